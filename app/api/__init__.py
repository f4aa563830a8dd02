"""HTTP only: routes, schemas, authentication and problem documents."""
