-- compatible_from: 5
-- Responses that are stored for their callers, encrypted, and the items that they are
-- found by.
CREATE TABLE responses (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX responses_expires ON responses (expires);
CREATE TABLE response_keys (
  owner    TEXT NOT NULL,
  digest   TEXT NOT NULL, -- of the item's id
  response TEXT NOT NULL,
  expires  BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX response_keys_expires ON response_keys (expires);

-- Approvals of clients that were used.
CREATE TABLE consents (
  owner   TEXT NOT NULL,
  digest  TEXT NOT NULL, -- of the approval's id
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX consents_expires ON consents (expires);
