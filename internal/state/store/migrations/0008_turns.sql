-- compatible_from: 5
-- What clients do not see of their conversations, encrypted, and what it is found by.
CREATE TABLE turns (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX turns_expires ON turns (expires);
CREATE TABLE turn_keys (
  owner   TEXT NOT NULL,
  digest  TEXT NOT NULL, -- of the key
  turn    TEXT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX turn_keys_expires ON turn_keys (expires);
