-- compatible_from: 5
-- Tokens of logins at MCP servers, encrypted under their owner's key: the caller who has
-- logged in, or nobody for the gateway itself. One that was forgotten is empty, until every
-- process has seen it.
CREATE TABLE logins (
  owner   TEXT NOT NULL,
  server  TEXT NOT NULL, -- its address
  changed BIGINT NOT NULL, -- counts the changes of all
  entry   BYTEA NOT NULL,
  made    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, server)
);
CREATE INDEX logins_changed ON logins (changed);
CREATE INDEX logins_expires ON logins (expires);

-- Which entries of files were taken over, by the digests of how they stood there.
CREATE TABLE login_imports (
  digest BYTEA NOT NULL PRIMARY KEY,
  at     BIGINT NOT NULL
);
