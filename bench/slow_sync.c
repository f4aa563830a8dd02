/* Preloaded into a server: every sync to disk takes two milliseconds longer, as on a disk that
   is slower than this one. The program itself knows nothing of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static int then_wait(int result) {
    struct timespec added = {0, 2000000};
    nanosleep(&added, 0);
    return result;
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return then_wait(real(file));
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return then_wait(real(file));
}
