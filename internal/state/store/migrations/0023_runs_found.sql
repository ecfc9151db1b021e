-- compatible_from: 5
-- Runs are found without those being read that only wait: what is due, what waits for
-- something that has come, and one by its id, whoever's it is.
CREATE INDEX runs_due ON runs (state, due);
CREATE INDEX runs_waits ON runs (waits) WHERE waits <> '';
CREATE INDEX runs_id ON runs (id);
CREATE INDEX runs_made ON runs (made);
