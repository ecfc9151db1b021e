-- compatible_from: 5
-- Requests with an Idempotency-Key: those that may have changed something, and the
-- answers, encrypted, that are given again.
CREATE TABLE claims (
  owner   TEXT NOT NULL,
  digest  TEXT NOT NULL, -- of the key
  print   TEXT NOT NULL, -- what has to be equal in both requests
  holder  TEXT NOT NULL, -- who runs it; empty once it has ended
  lease   BIGINT NOT NULL, -- until when the holder is taken to be alive
  changed BIGINT NOT NULL, -- 1: it may have changed something
  answer  BYTEA NOT NULL, -- empty for none
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX claims_expires ON claims (expires);
