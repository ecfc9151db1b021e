package api

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// TestNearby: responses of one connection and stored ones go on from each other.
func TestNearby(t *testing.T) {
	near, far := &responses.Memory{}, &responses.Memory{}
	// 6 and 3 are stored, 5, 4 and 2 are this connection's, and nobody has 1 any more.
	for _, kept := range []struct {
		in           *responses.Memory
		id, previous string
	}{{far, "6", "5"}, {near, "5", "4"}, {near, "4", "3"}, {far, "3", "2"}, {near, "2", "1"}, {far, "7", ""}} {
		if err := kept.in.Put(t.Context(), "ann", &responses.Stored{ID: kept.id, Previous: kept.previous}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		in               responses.Store
		caller           string
		id, until, wants string
	}{
		{far, "ann", "6", "", "6 5 4 3 2 none"},
		{far, "ann", "6", "3", "6 5 4 3"},
		{far, "ann", "5", "4", "5 4"},
		{far, "ann", "7", "", "7"},
		{far, "ann", "8", "", "none"},
		{far, "bob", "6", "", "none"},
		{nil, "ann", "5", "", "5 4 none"},
		{nil, "ann", "6", "", "none"},
	} {
		var got []string
		err := (&nearby{tc.in, near}).Follow(t.Context(), tc.caller, tc.id, func(s *responses.Stored) bool {
			if s == nil {
				got = append(got, "none")
				return true
			}
			got = append(got, s.ID)
			return s.ID != tc.until
		})
		if err != nil || strings.Join(got, " ") != tc.wants {
			t.Errorf("%s follows %s until %q: %q, %v; want %q", tc.caller, tc.id, tc.until, got, err, tc.wants)
		}
	}
}
