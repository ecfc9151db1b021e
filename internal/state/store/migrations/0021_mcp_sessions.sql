-- compatible_from: 5
-- What legacy MCP clients said of their sessions that every replica has to know: that one has
-- ended, the level of log messages, what is subscribed to. A session itself is in its id, so
-- that most have no row.
CREATE TABLE mcp_sessions (
  id      TEXT NOT NULL PRIMARY KEY,
  owner   TEXT NOT NULL,
  note    BYTEA NOT NULL, -- encrypted
  changed BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX mcp_sessions_owner ON mcp_sessions (owner);
CREATE INDEX mcp_sessions_changed ON mcp_sessions (changed);
CREATE INDEX mcp_sessions_expires ON mcp_sessions (expires);
