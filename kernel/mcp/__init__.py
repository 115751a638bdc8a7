"""MCP in both protocol eras, over HTTP and stdio."""
