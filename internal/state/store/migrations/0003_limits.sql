-- What was used of daily limits.
CREATE TABLE limit_days (
  day     BIGINT NOT NULL, -- since 1970, in UTC
  counter TEXT NOT NULL,
  calls   BIGINT NOT NULL,
  tokens  BIGINT NOT NULL,
  PRIMARY KEY (day, counter)
);
