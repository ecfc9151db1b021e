// Package invalid is how the parts of a configuration say which of their keys is wrong:
// their Validate methods return its error, and whoever read the file finds the line by
// the key.
package invalid

// An Error says which key of a section is wrong and why.
type Error struct {
	// Key is the key as the configuration spells it; empty for the whole section.
	Key string
	// Reason says what is wrong.
	Reason string
}

// Key returns the error about a key.
func Key(key, reason string) error { return &Error{key, reason} }

// Error returns the reason, with the key in front of it.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}
