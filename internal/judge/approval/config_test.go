package approval

import "testing"

// What the configuration says counts, be it the least that there is; what it does not say
// is the default.
func TestConfigIsTaken(t *testing.T) {
	said := Config{Expires: 1, Keep: 1, Pending: 1}
	if got := New(nil, said, nil).config.Load(); got.Expires != 1 || got.Keep != 1 || got.Pending != 1 {
		t.Errorf("%+v", got)
	}
	if got := New(nil, Config{}, nil).config.Load(); got.Expires <= 0 || got.Keep <= 0 || got.Pending <= 1 {
		t.Errorf("by default %+v", got)
	}
}
