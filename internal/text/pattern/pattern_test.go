package pattern

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A Pattern does what the expression does.
func TestPattern(t *testing.T) {
	const expr, text = `(\w)=(\d+)`, "a=1, b=22"
	p, re := Of(expr), regexp.MustCompile(expr)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"MatchString", p.MatchString(text), true},
		{"MatchString of another", p.MatchString("a"), false},
		{"FindString", p.FindString(text), re.FindString(text)},
		{"FindStringIndex", p.FindStringIndex(text), re.FindStringIndex(text)},
		{"FindStringSubmatch", p.FindStringSubmatch(text), re.FindStringSubmatch(text)},
		{"FindAllString", p.FindAllString(text, -1), re.FindAllString(text, -1)},
		{"FindAllStringSubmatch", p.FindAllStringSubmatch(text, -1), re.FindAllStringSubmatch(text, -1)},
		{"ReplaceAllString", p.ReplaceAllString(text, "$2=$1"), re.ReplaceAllString(text, "$2=$1")},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Of a wrong one every test of its package hears.
func TestWrong(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "missing closing )") {
			t.Errorf("panic %v", r)
		}
	}()
	Of(`(`)
}
