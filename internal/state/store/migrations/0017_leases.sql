-- compatible_from: 5
-- Rates that all replicas have together: until when what was given out of each is spent.
CREATE TABLE limit_rates (
  counter TEXT NOT NULL PRIMARY KEY,
  spent   BIGINT NOT NULL -- later than now by what is missing of a full burst
);
CREATE INDEX limit_rates_spent ON limit_rates (spent);
-- What runs at a time, by the replica that runs it.
CREATE TABLE limit_slots (
  counter TEXT NOT NULL,
  node    TEXT NOT NULL,
  held    BIGINT NOT NULL,
  lease   BIGINT NOT NULL, -- until when a replica that says nothing is taken to run it
  PRIMARY KEY (counter, node)
);
CREATE INDEX limit_slots_lease ON limit_slots (lease);
