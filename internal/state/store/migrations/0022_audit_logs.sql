-- compatible_from: 5
-- The audit log of each start of a process, which it alone writes. Before, one log was
-- all processes', in the table audit: a program of then goes on with it.
CREATE TABLE audit_records (
  log     TEXT NOT NULL,
  seq     BIGINT NOT NULL,
  time    BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  call    TEXT NOT NULL,
  caller  TEXT NOT NULL,
  server  TEXT NOT NULL,
  target  TEXT NOT NULL,
  verdict TEXT NOT NULL,
  hash    BYTEA NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (log, seq)
);
CREATE INDEX audit_records_time ON audit_records (time);
CREATE INDEX audit_records_call ON audit_records (call);

-- Whose each log is, and how much of it others know or have removed.
CREATE TABLE audit_logs (
  log          TEXT NOT NULL PRIMARY KEY,
  node         TEXT NOT NULL,   -- among the replicas; empty for a process that is none
  version      TEXT NOT NULL,   -- of the program
  began        BIGINT NOT NULL,
  seen         BIGINT NOT NULL, -- when its process, or whoever removed records, last came by
  named        BIGINT NOT NULL, -- through which record another log names its head
  removed      BIGINT NOT NULL, -- through which record it was removed
  removed_hash TEXT NOT NULL    -- the hash of that one; empty for none
);
INSERT INTO audit_logs (log, node, version, began, seen, named, removed, removed_hash)
  SELECT log, '', '', 0, 0, 0, 0, '' FROM audit_head;

-- What people look through: all logs.
CREATE VIEW audit_all AS
  SELECT 'audit' AS log, seq, time, kind, call, caller, server, target, verdict, hash, body FROM audit
  UNION ALL
  SELECT log, seq, time, kind, call, caller, server, target, verdict, hash, body FROM audit_records;

-- The record that says how an approval was answered: its log, number and hash.
ALTER TABLE approvals ADD COLUMN record TEXT NOT NULL DEFAULT '';
