-- compatible_from: 5
-- When an owner's key encrypted last, to the day: one that has not for a while, and whose owner
-- has nothing, goes. Owners are as many as people and conversations that clients name.
ALTER TABLE owner_keys ADD COLUMN used BIGINT NOT NULL DEFAULT 0;
