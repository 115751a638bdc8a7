"""The HTTP transport: connections, the fast path, REST, the GET routes."""
