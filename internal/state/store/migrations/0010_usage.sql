-- compatible_from: 5
-- What callers used, by the hour, and by the day once it is older.
CREATE TABLE usage (
  period    BIGINT NOT NULL, -- its first hour, since 1970, in UTC
  hours     BIGINT NOT NULL, -- its length: 1 or 24
  caller    TEXT NOT NULL,
  model     TEXT NOT NULL,   -- as the configuration calls it; empty for a tool
  server    TEXT NOT NULL,
  tool      TEXT NOT NULL,
  calls     BIGINT NOT NULL,
  errors    BIGINT NOT NULL,
  micros    BIGINT NOT NULL, -- that they took together
  input     BIGINT NOT NULL, -- tokens
  output    BIGINT NOT NULL,
  cached    BIGINT NOT NULL, -- of input
  reasoning BIGINT NOT NULL, -- of output
  repairs   BIGINT NOT NULL,
  cuts      BIGINT NOT NULL,
  cost      BIGINT NOT NULL, -- in millionths
  PRIMARY KEY (period, hours, caller, model, server, tool)
);
CREATE INDEX usage_caller ON usage (caller, period);
-- What was written of it: whoever does not know whether a batch was, writes it again.
CREATE TABLE usage_batches (
  id TEXT NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
);
