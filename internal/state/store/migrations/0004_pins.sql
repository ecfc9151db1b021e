-- Definitions of tools: those that are approved, and those that wait to be.
CREATE TABLE pins (
  server     TEXT NOT NULL, -- its label
  tool       TEXT NOT NULL, -- its name at the server
  state      TEXT NOT NULL, -- approved, waiting or passed
  pin        TEXT NOT NULL,
  identity   TEXT NOT NULL, -- a digest: which server the label meant
  definition BYTEA NOT NULL,
  at         BIGINT NOT NULL, -- when it was approved, or first seen so
  reason     TEXT NOT NULL, -- how it came to be approved, or why it waits
  decider    TEXT NOT NULL,
  PRIMARY KEY (server, tool, state)
);

-- How often people changed what is approved: other processes look at it.
CREATE TABLE pin_changes (
  id BIGINT PRIMARY KEY,
  n  BIGINT NOT NULL
);
