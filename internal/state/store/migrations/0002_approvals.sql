-- Questions to an operator: may this caller make this call?
CREATE TABLE approvals (
  id        TEXT NOT NULL PRIMARY KEY,
  state     TEXT NOT NULL,
  caller    TEXT NOT NULL,
  server    TEXT NOT NULL,
  tool      TEXT NOT NULL,
  pin       TEXT NOT NULL,
  digest    TEXT NOT NULL,
  details   TEXT NOT NULL, -- what a person is shown, as JSON
  arguments TEXT NOT NULL,
  rule      TEXT NOT NULL,
  approvers TEXT NOT NULL, -- a JSON array
  lasts     BIGINT NOT NULL, -- microseconds that a question or an approval is good for
  asked     BIGINT NOT NULL,
  expires   BIGINT NOT NULL,
  decided   BIGINT NOT NULL,
  decider   TEXT NOT NULL,
  why       TEXT NOT NULL,
  used      BIGINT NOT NULL,
  used_by   TEXT NOT NULL -- the call
);
CREATE INDEX approvals_state ON approvals (state, expires);
CREATE INDEX approvals_caller ON approvals (caller, state);
