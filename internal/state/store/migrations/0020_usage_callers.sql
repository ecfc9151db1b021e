-- compatible_from: 5
-- What callers of usage are called where rules mean them by name: budgets of several keys.
CREATE TABLE usage_callers (
  caller TEXT NOT NULL PRIMARY KEY,
  name   TEXT NOT NULL
);
