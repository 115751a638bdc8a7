"""Tool calls: the tool table, arguments, dispatch, settings, resources, tenants."""
