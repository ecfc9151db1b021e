-- compatible_from: 5
-- How much owners have is summed up every minute, and of one owner now and then while nobody
-- else writes. Sizes stand behind what they are the sizes of: without these, all of that is
-- read through each time. Who has no room gives up what would expire first.
CREATE INDEX turns_size ON turns (owner, expires, size);
CREATE INDEX responses_size ON responses (owner, expires, size);
CREATE INDEX conversations_size ON conversations (owner, expires, size);
CREATE INDEX results_size ON results (owner, expires, size);
CREATE INDEX claims_size ON claims (owner, expires, size);
CREATE INDEX runs_size ON runs (owner, size);
CREATE INDEX run_events_size ON run_events (owner, size);
CREATE INDEX run_steps_size ON run_steps (owner, size);
-- Who looks through approvals sees the newest first.
CREATE INDEX approvals_asked ON approvals (asked);
-- Hours are added up to days once they are old.
CREATE INDEX usage_hours ON usage (hours, period);
