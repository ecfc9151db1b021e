-- compatible_from: 5
-- Generations of the keys that seal what leaves us, wrapped by the master key.
CREATE TABLE seal_keys (
  id      BIGINT NOT NULL PRIMARY KEY,
  made    BIGINT NOT NULL,
  wrapped BYTEA NOT NULL
);

-- The key that an owner's content is encrypted under, wrapped by the master key.
CREATE TABLE owner_keys (
  owner   TEXT NOT NULL PRIMARY KEY,
  wrapped BYTEA NOT NULL
);
