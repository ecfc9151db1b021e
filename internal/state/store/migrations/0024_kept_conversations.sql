-- compatible_from: 5
-- Conversations that are kept for their callers, with their items, encrypted.
CREATE TABLE conversations (
  owner   TEXT NOT NULL,
  id      TEXT NOT NULL,
  content BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX conversations_expires ON conversations (expires);
-- Who alone may add to a conversation, and until when.
CREATE TABLE conversation_claims (
  owner        TEXT NOT NULL,
  conversation TEXT NOT NULL,
  holder       TEXT NOT NULL,
  expires      BIGINT NOT NULL,
  PRIMARY KEY (owner, conversation)
);
CREATE INDEX conversation_claims_expires ON conversation_claims (expires);
