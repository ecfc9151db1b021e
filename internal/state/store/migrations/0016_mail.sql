-- compatible_from: 5
-- What one node says to another, until that has read it.
CREATE TABLE mail (
  id      TEXT NOT NULL PRIMARY KEY,
  node    TEXT NOT NULL, -- for whom; empty for whoever holds the key
  key     TEXT NOT NULL,
  owner   TEXT NOT NULL, -- of what is said
  body    BYTEA NOT NULL, -- encrypted
  size    BIGINT NOT NULL,
  made    BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX mail_node ON mail (node, made);
CREATE INDEX mail_owner ON mail (owner);
CREATE INDEX mail_expires ON mail (expires);
