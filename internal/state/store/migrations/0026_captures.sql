-- compatible_from: 5
-- Conversations and calls that are over, for people who look at what was done, encrypted:
-- whose caller's they are, since what is kept is bounded for a caller, and not for each of
-- the people behind it.
CREATE TABLE captures (
  id      TEXT NOT NULL PRIMARY KEY,
  owner   TEXT NOT NULL,
  caller  TEXT NOT NULL,
  at      BIGINT NOT NULL, -- when it began
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  head    BYTEA NOT NULL,  -- what a list shows
  content BYTEA NOT NULL
);
CREATE INDEX captures_caller ON captures (caller, at);
CREATE INDEX captures_at ON captures (at);
CREATE INDEX captures_owner ON captures (owner);
CREATE INDEX captures_expires ON captures (expires);
