-- compatible_from: 5
-- What runs without anybody who waits for it. The content is what it is made of,
-- encrypted; empty once it has ended.
CREATE TABLE runs (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  label   TEXT NOT NULL,   -- for people: the model
  state   TEXT NOT NULL,   -- ready, running, waiting or done
  outcome TEXT NOT NULL,   -- of what is done: completed, failed, cancelled or incomplete
  node    TEXT NOT NULL,   -- the process that has it; empty for none
  epoch   BIGINT NOT NULL, -- raised whenever another one has it, or nobody may have it any more
  attempt BIGINT NOT NULL, -- how often a process died with it, or is taken for dead
  lease   BIGINT NOT NULL, -- until when the process is taken to be alive
  waits   TEXT NOT NULL,   -- what it waits for; empty for nothing
  due     BIGINT NOT NULL, -- when it goes on whatever came of that
  last    BIGINT NOT NULL, -- the number of its last event; -1 for none
  made    BIGINT NOT NULL,
  ended   BIGINT NOT NULL, -- 0: not yet
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX runs_state ON runs (state, lease);
CREATE INDEX runs_expires ON runs (expires);
-- What it says, in blocks, encrypted.
CREATE TABLE run_events (
  owner   TEXT NOT NULL,
  run     TEXT NOT NULL,
  first   BIGINT NOT NULL, -- the numbers of the first and the last event of the block
  last    BIGINT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, run, first)
);
CREATE INDEX run_events_expires ON run_events (expires);
-- What it has from others and never asks for again, encrypted.
CREATE TABLE run_steps (
  owner   TEXT NOT NULL,
  run     TEXT NOT NULL,
  step    TEXT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, run, step)
);
CREATE INDEX run_steps_expires ON run_steps (expires);
