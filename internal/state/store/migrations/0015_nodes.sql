-- compatible_from: 5
-- The processes that serve on this store, as they said last.
CREATE TABLE nodes (
  number  BIGINT NOT NULL PRIMARY KEY, -- never used again
  version TEXT NOT NULL,
  setup   TEXT NOT NULL, -- digest of the configuration in effect
  address TEXT NOT NULL, -- where it listens, for people
  began   BIGINT NOT NULL,
  beat    BIGINT NOT NULL, -- when it last said that it lives
  lease   BIGINT NOT NULL, -- until when it is taken to live
  ahead   BIGINT NOT NULL  -- of the database's clock, in microseconds
);
-- The last number that was given to a node.
CREATE TABLE node_numbers (
  id   BIGINT NOT NULL PRIMARY KEY, -- 1
  last BIGINT NOT NULL
);
