-- compatible_from: 5
-- API keys that are good nowhere, whatever a file says.
CREATE TABLE revoked_keys (
  id      TEXT NOT NULL PRIMARY KEY,
  at      BIGINT NOT NULL
);
