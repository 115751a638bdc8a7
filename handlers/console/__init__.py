"""The console: pages for people under /ui, rendered on the server, each with the same data as JSON."""
