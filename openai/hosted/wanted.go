package hosted

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Wanted is what a client says of its searches.
type Wanted struct {
	// Most is how many searches a request may make; 0 for any number.
	Most int
	// Allowed are the sites that pages may be of, as hosts, perhaps with the beginning
	// of a path behind them; nil for all. Blocked are those of which no page may be.
	// Subdomains are part of a site.
	Allowed, Blocked []string
}

// Read reads an entry of tools that declares a search, which stands at param, by the
// members of the Responses API (filters) and of Messages (max_uses, allowed_domains,
// blocked_domains). The error is an [*model.Error].
func Read(o *rawjson.Object, param string) (*Wanted, error) {
	w := &Wanted{}
	if raw := o.Get("max_uses"); !rawjson.IsNull(raw) {
		var ok bool
		if w.Most, ok = rawjson.Int(raw); !ok || w.Most < 1 {
			return nil, model.Invalid(param+".max_uses", param+".max_uses: must be a whole number above zero.")
		}
	}
	if err := w.readSites(o, param); err != nil {
		return nil, err
	}
	if raw := o.Get("filters"); !rawjson.IsNull(raw) {
		filters, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, model.Invalid(param+".filters", param+".filters: must be an object.")
		}
		if err := w.readSites(filters, param+".filters"); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Wanted) readSites(o *rawjson.Object, param string) error {
	for name, into := range map[string]*[]string{"allowed_domains": &w.Allowed, "blocked_domains": &w.Blocked} {
		raw := o.Get(name)
		if rawjson.IsNull(raw) {
			continue
		}
		elements, err := rawjson.Elements(raw)
		if err != nil {
			return model.Invalid(param+"."+name, fmt.Sprintf("%s.%s: must be an array of sites.", param, name))
		}
		var sites []string // none is as if nothing was said
		for i, each := range elements {
			site, ok := rawjson.String(each)
			if !ok || site == "" || strings.ContainsAny(site, "*?#@ ") || strings.Contains(site, "://") {
				return model.Invalid(fmt.Sprintf("%s.%s", param, name), fmt.Sprintf("%s.%s: entry %d must be a host, such as example.com, perhaps with a path behind it, without a scheme and without *.", param, name, i))
			}
			sites = append(sites, site)
		}
		*into = sites
	}
	return nil
}

// filters reports whether pages of some sites only are wanted.
func (w Wanted) filters() bool { return w.Allowed != nil || len(w.Blocked) > 0 }

// only returns the pages that are wanted.
func (w Wanted) only(found []Result) []Result {
	return slices.DeleteFunc(slices.Clone(found), func(r Result) bool {
		u, err := url.Parse(r.URL)
		if err != nil {
			return true // it was parsed before
		}
		of := func(site string) bool { return isOf(u, site) }
		return w.Allowed != nil && !slices.ContainsFunc(w.Allowed, of) || slices.ContainsFunc(w.Blocked, of)
	})
}

// isOf reports whether a page is of a site.
func isOf(u *url.URL, site string) bool {
	host, path, _ := strings.Cut(strings.ToLower(site), "/")
	have := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if have != host && !strings.HasSuffix(have, "."+host) {
		return false
	}
	under := strings.Trim(strings.ToLower(u.Path), "/")
	path = strings.Trim(path, "/")
	return path == "" || under == path || strings.HasPrefix(under, path+"/")
}
