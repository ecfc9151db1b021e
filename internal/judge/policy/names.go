package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/cedar-policy/cedar-go/types"
)

// wantedNames are the names of arguments that rules look for, by what they are in any case.
// Go's encoding/json, for one, takes "Path" for "path".
type wantedNames struct {
	spelled map[string][]string
	most    int // spellings of one name
}

func foldedNames(rules statements) wantedNames {
	w := wantedNames{spelled: map[string][]string{}}
	for _, each := range rules {
		for _, name := range each.members {
			key := folded(name)
			if !slices.Contains(w.spelled[key], name) {
				w.spelled[key] = append(w.spelled[key], name)
				w.most = max(w.most, len(w.spelled[key]))
			}
		}
	}
	return w
}

// rename returns a record with each name in the nth spelling in which rules look for it, at
// any depth, and whether that is another record. Two members that become one are an error.
func (w *wantedNames) rename(r types.Record, n int) (renamed types.Record, changed bool, err error) {
	members := make(types.RecordMap, r.Len())
	for name, value := range r.All() {
		if spelled := w.spelled[folded(string(name))]; spelled != nil {
			wanted := types.String(spelled[min(n, len(spelled)-1)])
			changed = changed || wanted != name
			name = wanted
		}
		if _, twice := members[name]; twice {
			return r, false, errTwins
		}
		inner, other, err := w.value(value, n)
		if err != nil {
			return r, false, err
		}
		members[name], changed = inner, changed || other
	}
	if !changed {
		return r, false, nil
	}
	return types.NewRecord(members), true, nil
}

func (w *wantedNames) value(v types.Value, n int) (renamed types.Value, changed bool, err error) {
	switch v := v.(type) {
	case types.Record:
		return w.rename(v, n)
	case types.Set:
		elements := make([]types.Value, 0, v.Len())
		for each := range v.All() {
			inner, other, err := w.value(each, n)
			if err != nil {
				return v, false, err
			}
			elements, changed = append(elements, inner), changed || other
		}
		if changed {
			return types.NewSet(elements...), true, nil
		}
	}
	return v, false, nil
}

// folded returns a name in the one spelling of all that [strings.EqualFold] takes for
// the same.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
