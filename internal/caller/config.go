package caller

import (
	"errors"
)

// Config is the section auth of the configuration: who may call the gateway.
type Config struct {
	APIKeys  []string `yaml:"api_keys" secret:"always" doc:"Keys that programs present as Authorization: Bearer, in addition to the one in DRAGOMAN_API_KEY. Each has 16 characters or more."`
	KeysFile string   `yaml:"keys_file" doc:"File of keys that dragoman keys makes and revokes; it is read again when it changes. Without this key it is keys.jsonl beside this file, where there is one."`
}

// A ConfigError says which key of a [Config] is wrong and why.
type ConfigError struct{ Field, Message string }

// Error returns the message, with the key in front of it.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Message }

// Key returns Field; configuration reading finds the line with it.
func (e *ConfigError) Key() string { return e.Field }

// Reason returns Message, without the key.
func (e *ConfigError) Reason() string { return e.Message }

// Validate reports what cannot work, as a [*ConfigError].
func (c *Config) Validate() error {
	for _, key := range c.APIKeys {
		if err := CheckKey(key); err != nil {
			return &ConfigError{"api_keys", err.Error()}
		}
	}
	return nil
}

// CheckKey reports why a key must not be used: it can be guessed. A key has at
// least 16 characters, of which at least 8 are different ones; 16 characters of
// base64 are 96 bits.
func CheckKey(key string) error {
	different := map[rune]bool{}
	for _, r := range key {
		different[r] = true
	}
	switch {
	case key == "":
		return errors.New("an empty key would let everybody in")
	case len(key) < 16:
		return errors.New("a key with fewer than 16 characters can be guessed")
	case len(different) < 8:
		return errors.New("a key with fewer than 8 different characters can be guessed")
	}
	return nil
}
