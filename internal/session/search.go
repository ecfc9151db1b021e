package session

import (
	"cmp"
	"strings"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// search returns when tools are searched for: as the request says, else the set that
// it is for, else the configuration.
func (o *Opener) search(want Want) model.Search {
	s := o.o.Search
	if want.Client {
		s.When = cmp.Or(o.o.Clients, model.Never)
	}
	if len(want.Servers) == 1 {
		if name, isSet := strings.CutPrefix(want.Servers[0].Server, SetPrefix); isSet {
			s.When = cmp.Or(o.o.SetSearch[name], s.When)
		}
	}
	s.When = cmp.Or(want.Search, s.When)
	return s
}
