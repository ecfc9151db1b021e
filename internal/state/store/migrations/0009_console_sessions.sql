-- compatible_from: 5
-- Who is signed in at the console, by the digest of what a cookie holds.
CREATE TABLE console_sessions (
  digest TEXT PRIMARY KEY,
  caller TEXT NOT NULL, -- its id
  who    TEXT NOT NULL, -- the caller as it was, as JSON
  mark   TEXT NOT NULL, -- digest of the key's record: another one, and the session is over
  began  BIGINT NOT NULL,
  used   BIGINT NOT NULL,
  ends   BIGINT NOT NULL
);
CREATE INDEX console_sessions_caller ON console_sessions (caller, began);
CREATE INDEX console_sessions_ends ON console_sessions (ends);
