package dialect

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// renameProperties gives properties names that the dialect takes.
func (c *conversion) renameProperties() {
	if c.propertyName == nil && len(c.rules.ReservedNames) == 0 && c.rules.NamesBesideOpen == "" {
		return
	}
	c.each(func(n *schema.Node) {
		properties := n.Get("properties")
		var op rename
		beside := c.besideOpen(n)
		for _, p := range append([]schema.Member(nil), properties.Members()...) {
			if c.legalProperty(p.Name) && (beside == nil || beside.MatchString(p.Name)) {
				continue
			}
			sent := c.propertyNameFor(p.Name)
			properties.Rename(p.Name, sent)
			op.pairs = append(op.pairs, renamed{original: p.Name, sent: sent})
			c.spill(p.Value, "named "+cut(p.Name, 100))
		}
		if len(op.pairs) == 0 {
			return
		}
		c.renameBeside(n, op.pairs)
		c.liftRenames(n, &op)
		m := c.mark(n)
		m.ops = append(m.ops, op)
		c.say("renameProperties", n, "a property name is not taken")
	})
}

// liftRenames takes over what schemas in n that judge the same value rename: which of them
// fits a value is seen by its names as they all are before, or after.
func (c *conversion) liftRenames(n *schema.Node, to *rename) {
	for sub := range n.Subschemas() {
		if !sub.InPlace() {
			continue
		}
		c.liftRenames(sub.Node, to)
		m := c.mark(sub.Node)
		m.ops = slices.DeleteFunc(m.ops, func(op mapping) bool {
			lifted, ok := op.(rename)
			for _, p := range lifted.pairs {
				if !slices.Contains(to.pairs, p) {
					to.pairs = append(to.pairs, p)
				}
			}
			return ok
		})
	}
}

// renameBeside brings renamed properties to what speaks of their names, in n and in the
// schemas in it that judge the same value.
func (c *conversion) renameBeside(n *schema.Node, pairs []renamed) {
	if names := n.Get("propertyNames"); names != nil {
		c.spillOne(n, constraint{"propertyNames", PropertyNames, "member names "}, names) // of the server's names
	}
	sent := func(name string) string {
		for _, p := range pairs {
			if p.original == name {
				return p.sent
			}
		}
		return name
	}
	inList := func(list *schema.Node) *schema.Node {
		var items []*schema.Node
		for _, item := range list.Items() {
			items = append(items, schema.NewString(sent(item.Text())))
		}
		return schema.NewArray(items...)
	}
	if list := n.Get("required"); list != nil {
		n.Set("required", inList(list))
	}
	for _, keyword := range []string{"dependentRequired", "dependentSchemas"} {
		if !n.Has(keyword) {
			continue
		}
		holder := schema.NewObject()
		for _, m := range n.Get(keyword).Members() {
			if m.Value.Kind() == schema.Array {
				m.Value = inList(m.Value)
			}
			holder.Set(sent(m.Name), m.Value)
		}
		n.Set(keyword, holder)
	}
	for sub := range n.Subschemas() {
		if sub.InPlace() {
			c.renameBeside(sub.Node, pairs)
		}
	}
}

// besideOpen is what names of properties have to match because their object may
// have further members; nil for no rule.
func (c *conversion) besideOpen(n *schema.Node) *regexp.Regexp {
	extra := n.Get("additionalProperties")
	if c.rules.NamesBesideOpen == "" || extra == nil || extra.IsBool(false) {
		return nil
	}
	if len(n.Get("properties").Members()) > 0 && !unrestricted(extra) {
		c.narrow("renameProperties", n, "the engine cannot write a further member whose name is the beginning of a declared one")
	}
	return namePattern(c.rules.NamesBesideOpen)
}

func (c *conversion) legalProperty(name string) bool {
	return (c.propertyName == nil || c.propertyName.MatchString(name)) && !slices.Contains(c.rules.ReservedNames, name)
}

// propertyNameFor returns a legal name that no other property of the tool has, and that this
// one has wherever it is declared: schemas that judge the same value speak of it by that.
func (c *conversion) propertyNameFor(name string) string {
	if sent, ok := c.sentAs[name]; ok {
		return sent
	}
	if c.sentAs == nil {
		c.sentAs, c.properties = map[string]string{}, map[string]bool{}
		c.each(func(n *schema.Node) {
			for _, p := range n.Get("properties").Members() {
				c.properties[p.Name] = true
			}
			c.namePatterns = append(c.namePatterns, knownPatterns(n)...)
		})
	}
	sent := c.unusedName(name)
	c.sentAs[name], c.properties[sent] = sent, true
	return sent
}

// unusedName makes a legal name that no property has.
func (c *conversion) unusedName(name string) string {
	base := strings.ReplaceAll(legalName(name), "-", "_")
	if len(base) > 56 {
		base = base[:56]
	}
	if strings.Trim(base, "_") == "" {
		base = "property"
	}
	if base[0] >= '0' && base[0] <= '9' {
		base = "_" + base
	}
	for i := 1; ; i++ {
		candidate := base
		if i > 1 {
			candidate = base + "_" + strconv.Itoa(i)
		} else if slices.Contains(c.rules.ReservedNames, base) {
			candidate = base + "_"
		}
		if !c.properties[candidate] && c.legalProperty(candidate) && !c.spokenOf(candidate, name) {
			return candidate
		}
		if i > 10000 {
			return candidate
		}
	}
}

// maxLooks is how many patterns are held against names for one tool.
const maxLooks = 1000

// spokenOf reports whether one of patternProperties would speak of a property by the name
// that it is sent by, and does not by its own.
func (c *conversion) spokenOf(sent, original string) bool {
	for _, p := range c.namePatterns {
		if c.looks++; c.looks > maxLooks {
			return false
		}
		if p.matches(sent) && !p.matches(original) {
			return true
		}
	}
	return false
}
