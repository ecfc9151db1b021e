-- compatible_from: 5
-- What has changed: a number for each topic, raised in the transaction that changes
-- something of it.
CREATE TABLE topics (
  name TEXT NOT NULL PRIMARY KEY,
  n    BIGINT NOT NULL
);
