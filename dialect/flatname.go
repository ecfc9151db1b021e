package dialect

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Models write a path for a name: {"opts.force": true} where {"opts": {"force":
// true}} is asked for. Such a member is no member that nobody declared, and passed
// on it would be dropped, in the worst case with the switch that it was. Where the
// place is free it goes there, else it is refused with the place that is perhaps
// meant. A path that is joined by a single _ or -, which may be a name of its own, is
// one only where the server takes no other names, and goes there only in a call that
// changes nothing.

// A pathName is a name that is read as the path to a property.
type pathName struct {
	path   []string
	target []*schema.Node
	sure   bool // it is joined as paths are
}

// pathNames are the ways to read a name as the path to a declared property.
func (w *naming) pathNames(known known, name string, depth int) (found []pathName) {
	if depth > schema.MaxDepth {
		return nil
	}
	for _, outer := range known.order {
		rest, sure, ok := joined(name, outer)
		if !ok {
			continue
		}
		inner := w.known(w.place.all(known.names[outer]))
		for _, p := range inner.order {
			if p == rest || spelledAlike(p, rest) {
				found = append(found, pathName{[]string{outer, p}, inner.names[p], sure})
			}
		}
		for _, deeper := range w.pathNames(inner, rest, depth+1) {
			found = append(found, pathName{append([]string{outer}, deeper.path...), deeper.target, sure && deeper.sure})
		}
	}
	return found
}

// joined takes a property's name from the front of a path. The path has to go on
// after a sign that joins paths.
func joined(name, outer string) (rest string, sure, ok bool) {
	if len(name) <= len(outer) || !strings.EqualFold(name[:len(outer)], outer) {
		return "", false, false
	}
	rest = name[len(outer):]
	for _, sign := range []string{"__", "::", "->", ".", "/", "["} {
		if after, cut := strings.CutPrefix(rest, sign); cut && after != "" {
			return strings.TrimSuffix(strings.Trim(after, `"'`), "]"), true, true
		}
	}
	if after := rest[1:]; after != "" && strings.IndexByte("_-:", rest[0]) >= 0 {
		return after, false, true
	}
	return "", false, false
}

// unflatten puts a member whose name is a path in its place, or refuses it.
func (w *naming) unflatten(v *schema.Node, known known, m schema.Member, path string) {
	var found []pathName
	for _, p := range w.pathNames(known, m.Name, 0) {
		if p.sure || known.closed && w.fits(p.target, m.Value) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return
	}
	p := found[0]
	place, free := w.freePlace(v, known, p.path)
	switch {
	case len(found) == 1 && place != nil && schema.Equal(place.Get(p.path[len(p.path)-1]), m.Value): // said twice
	case len(found) == 1 && free && (p.sure || w.grade == Likely):
		v.Delete(m.Name)
		put(v, p.path, m.Value)
		w.repairs = append(w.repairs, Repair{Rule: "pathName", Path: path + schema.Pointer(p.path...)})
	default:
		var places []string
		for _, p := range found {
			places = append(places, schema.Pointer(p.path...))
		}
		w.refuse(path+schema.Pointer(m.Name), "no member of this name; is '"+path+strings.Join(places, "' or '"+path)+"' meant?")
	}
}

// freePlace is the object at the end of a path, as far as it is there, and whether
// the path's last member is missing from it, so that it can be put there.
func (w *naming) freePlace(v *schema.Node, known known, path []string) (place *schema.Node, free bool) {
	for i, name := range path[:len(path)-1] {
		inner := v.Get(name)
		if inner == nil || i == 0 && inner.Kind() == schema.Null && known.absent[name] {
			return nil, true
		}
		if inner.Kind() != schema.Object {
			return nil, false
		}
		v = inner
	}
	return v, !v.Has(path[len(path)-1])
}

// put sets a value at the end of a path, and makes the objects on the way.
func put(v *schema.Node, path []string, value *schema.Node) {
	for _, name := range path[:len(path)-1] {
		if v.Get(name).Kind() != schema.Object {
			v.Set(name, schema.NewObject())
		}
		v = v.Get(name)
	}
	v.Set(path[len(path)-1], value)
}
