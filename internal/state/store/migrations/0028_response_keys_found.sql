-- compatible_from: 5
-- Who deletes a response removes the keys that it is found by: without this, all keys of
-- everybody are read through each time.
CREATE INDEX response_keys_response ON response_keys (owner, response);
