"""Texts as people write them into notes, for property tests."""

from hypothesis import strategies as st

# Parted by two spaces: some of them hold a single one.
SAID = (
    "loss  0.31  lr=3e-4  学習率  を下げる  caf\u00e9  **bold**  `code`  #lr  "
    "@mira  |  \\  e\u0301  \U0001f469\u200d\U0001f52c  1,024  a\u00a0b  https://x.org/a  See"
)
ODD = (
    "# Title  ## User  ## Details  ### Below  ```  ```py  ~~~  ---  ***  -  1. one  - item  #  "
    "> quote  | a | b |  <!-- note -->  <!--  -->  \\## User  \\```  ===  - ```sh  - # in  "
    "See archival: projects/x  ```make test``` runs  <!--  -->  1. See archival: projects/x  "
    "Rates (See archival: projects/my notes (1))"
)
INDENTED = ("  - inner", "    deep", "\ttab", "  ```", "    # deep", "   - three")
WORDS = st.sampled_from(SAID.split("  "))
LINES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
ODD_LINES = st.sampled_from((*ODD.split("  "), *INDENTED))
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n"])


def texts(*, max_lines: int = 12) -> st.SearchStrategy[str]:
    """Texts of ordinary and odd lines, some without a last line end."""
    lines = st.lists(st.tuples(LINES | ODD_LINES, ENDS).map("".join), max_size=max_lines)
    return st.tuples(lines.map("".join), LINES | ODD_LINES | st.just("")).map("".join)
