-- The audit log. The body is the record, byte for byte as its hash covers it; the
-- columns before it repeat what people look for.
CREATE TABLE audit (
  seq     BIGINT PRIMARY KEY,
  time    BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  call    TEXT NOT NULL,
  caller  TEXT NOT NULL,
  server  TEXT NOT NULL,
  target  TEXT NOT NULL,
  verdict TEXT NOT NULL,
  hash    BYTEA NOT NULL,
  body    TEXT NOT NULL
);
CREATE INDEX audit_time ON audit (time);
CREATE INDEX audit_call ON audit (call);

-- The last record of the log, so that one cannot cut it off unnoticed.
CREATE TABLE audit_head (
  log  TEXT NOT NULL PRIMARY KEY,
  seq  BIGINT NOT NULL,
  hash BYTEA NOT NULL
);
