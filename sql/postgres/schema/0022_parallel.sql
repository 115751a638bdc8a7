-- It catches errors in a subtransaction, which no worker of a parallel query may begin.
ALTER FUNCTION quipu.json_valid(text) PARALLEL RESTRICTED;
