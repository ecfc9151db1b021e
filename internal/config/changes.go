package config

import (
	"maps"
	"reflect"
	"slices"
)

// restarts are the keys that a process takes over only when it starts: the listener with
// what it reads with, the store and what is pinned in it, what servers are told of those
// behind us when they are greeted, the form of a log that has begun, and who watches.
var restarts = []string{"listen", "tls", "http.header_timeout", "store", "pins", "mcp.off", "sampling.answer", "log.format", "log.levels", "telemetry", "usage"}

// Changes are the keys, such as policy and mcpServers.files, in which two configurations
// differ.
type Changes struct {
	// Now take effect when the file is read again, and Restart when dragoman starts again.
	Now, Restart []string
}

// Follow makes f one that a process that began with another configuration can take over:
// what needs another start becomes what it is there. It returns what was changed, and
// what was so put back.
func (f *File) Follow(began, before *File) Changes {
	c := Changes{Now: []string{}, Restart: []string{}}
	now, old, first := reflect.ValueOf(f).Elem(), reflect.ValueOf(before).Elem(), reflect.ValueOf(began).Elem()
	for _, field := range fieldsOf(now.Type()) {
		c.follow(field.name, now.FieldByIndex(field.index), old.FieldByIndex(field.index), first.FieldByIndex(field.index))
	}
	return c
}

// follow compares the values of a key.
func (c *Changes) follow(key string, now, old, first reflect.Value) {
	switch {
	case slices.Contains(restarts, key):
		if !reflect.DeepEqual(now.Interface(), first.Interface()) {
			c.Restart = append(c.Restart, key)
			now.Set(first)
		}
	case reflect.DeepEqual(now.Interface(), old.Interface()):
	case now.Kind() == reflect.Struct:
		for _, field := range fieldsOf(now.Type()) {
			c.follow(key+"."+field.name, now.FieldByIndex(field.index), old.FieldByIndex(field.index), first.FieldByIndex(field.index))
		}
	case now.Kind() == reflect.Map && !now.IsNil() && !old.IsNil():
		c.Now = append(c.Now, differing(key, now, old)...)
	default:
		c.Now = append(c.Now, key)
	}
}

// differing are the keys of the entries in which two maps differ.
func differing(key string, now, old reflect.Value) []string {
	names := map[string]bool{}
	for _, of := range []reflect.Value{now, old} {
		for _, name := range of.MapKeys() {
			a, b := now.MapIndex(name), old.MapIndex(name)
			if !a.IsValid() || !b.IsValid() || !reflect.DeepEqual(a.Interface(), b.Interface()) {
				names[key+"."+name.String()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
