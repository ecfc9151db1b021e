-- Definitions of more than tools: prompts, skills and instructions. A process of the
-- version before takes all of them for tools, and goes on.
CREATE TABLE pins_by_kind (
  server     TEXT NOT NULL, -- its label
  kind       TEXT NOT NULL DEFAULT 'tool', -- tool, prompt, skill or instructions
  tool       TEXT NOT NULL, -- its name at the server; a skill's URI
  state      TEXT NOT NULL, -- approved, waiting or passed
  pin        TEXT NOT NULL,
  identity   TEXT NOT NULL, -- a digest: which server the label meant
  definition BYTEA NOT NULL,
  at         BIGINT NOT NULL, -- when it was approved, or first seen so
  reason     TEXT NOT NULL, -- how it came to be approved, or why it waits
  decider    TEXT NOT NULL,
  PRIMARY KEY (server, kind, tool, state)
);
INSERT INTO pins_by_kind (server, tool, state, pin, identity, definition, at, reason, decider)
  SELECT server, tool, state, pin, identity, definition, at, reason, decider FROM pins;
DROP TABLE pins;
ALTER TABLE pins_by_kind RENAME TO pins;
