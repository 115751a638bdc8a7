"""The process: composition root, ASGI application, socket, workers."""
