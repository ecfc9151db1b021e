-- compatible_from: 5
-- Calls that have gone on with their answers: each goes on once.
CREATE TABLE legs (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX legs_expires ON legs (expires);

-- Conversations that have read something that strangers may have written.
CREATE TABLE taints (
  owner   TEXT NOT NULL,
  digest  TEXT NOT NULL, -- of the conversation
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX taints_expires ON taints (expires);

-- The whole of results that were cut, encrypted.
CREATE TABLE results (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX results_expires ON results (expires);
