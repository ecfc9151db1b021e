package policy

import (
	"slices"
	"strconv"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// class names all callers whom the rules cannot tell apart.
func (p *Policy) class(c *caller.Caller) string {
	var b []byte
	add := func(text string) { b = append(strconv.AppendInt(b, int64(len(text)), 10), ':'); b = append(b, text...) }
	if p.uses.id {
		add(c.ID)
	}
	if p.uses.name {
		add(c.RuleName())
	}
	if p.uses.tested {
		add(p.passed(c))
	}
	if p.uses.issuer {
		add(c.Issuer)
	}
	if p.uses.client {
		add(c.Client)
	}
	if p.uses.scopes {
		for _, s := range c.Scopes {
			add(s)
		}
	}
	return string(b)
}

// A test is what rules ask of the id or the name of a caller where its answer is all that they
// learn. Callers with the same answers are one for the rules, be they ten thousand.
type test struct {
	attribute types.String // id or name
	like      *types.Pattern
	equal     types.String
	group     string // a pattern of [Rule], which either may match
}

// Bounds of what is remembered of tests.
const (
	fewTests    = 8 // which are made each time
	passedBytes = 16 << 20
)

// passed returns the answers to all tests, a bit each.
func (p *Policy) passed(c *caller.Caller) string {
	if len(p.tests) <= fewTests {
		return p.test(c)
	}
	key := strconv.Itoa(len(c.ID)) + ":" + c.ID + c.RuleName()
	if answers, ok := p.answers.Get("", key); ok {
		return answers
	}
	answers := p.test(c)
	p.answers.Put("", key, answers, int64(len(key)+len(answers)))
	return answers
}

func (p *Policy) test(c *caller.Caller) string {
	bits, name := make([]byte, (len(p.tests)+7)/8), c.RuleName()
	for i := range p.tests {
		if p.tests[i].holds(c.ID, name) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return string(bits)
}

func (t *test) holds(id, name string) bool {
	if t.group != "" {
		return inGroup(t.group, id, name)
	}
	value := types.String(id)
	if t.attribute == "name" {
		value = types.String(name)
	}
	if t.like != nil {
		return t.like.Match(value)
	}
	return value == t.equal
}

// inGroup reports whether a caller is in the group of a pattern.
func inGroup(pattern, id, name string) bool {
	return glob.Match(pattern, id) || name != "" && glob.Match(pattern, name)
}

func (t *test) same(other test) bool {
	alike := t.like == nil && other.like == nil || t.like != nil && other.like != nil && t.like.Equal(*other.like)
	return alike && t.attribute == other.attribute && t.equal == other.equal && t.group == other.group
}

// testOf returns the test that an expression is; ok is false for one that is none.
func testOf(n ast.IsNode) (t test, ok bool) {
	switch n := n.(type) {
	case ast.NodeTypeLike:
		t.attribute, ok = testable(n.Arg)
		t.like = &n.Value
		return t, ok
	case ast.NodeTypeEquals:
		for _, sides := range [][2]ast.IsNode{{n.Left, n.Right}, {n.Right, n.Left}} {
			value, isValue := sides[1].(ast.NodeValue)
			if t.attribute, ok = testable(sides[0]); !ok || !isValue {
				continue
			}
			if t.equal, ok = value.Value.(types.String); ok {
				return t, true
			}
		}
	case ast.NodeTypeIn:
		value, isValue := n.Right.(ast.NodeValue)
		if variable, is := n.Left.(ast.NodeTypeVariable); is && variable.Name == "principal" && isValue {
			group, is := value.Value.(types.EntityUID)
			return test{group: string(group.ID)}, is && group.Type == typePattern
		}
	}
	return test{}, false
}

// testable returns the attribute of the caller that an expression is.
func testable(n ast.IsNode) (types.String, bool) {
	access, ok := n.(ast.NodeTypeAccess)
	if !ok {
		return "", false
	}
	variable, ok := access.Arg.(ast.NodeTypeVariable)
	return access.Value, ok && variable.Name == "principal" && (access.Value == "id" || access.Value == "name")
}

// testOfScope returns the test that the scope of a policy is.
func testOfScope(scope ast.IsPrincipalScopeNode) (t test, ok bool) {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		return test{attribute: "id", equal: s.Entity.ID}, s.Entity.Type == typeCaller
	case ast.ScopeTypeIn:
		return test{group: string(s.Entity.ID)}, s.Entity.Type == typePattern
	}
	return test{}, false
}

// testsOf returns all tests of a policy.
func testsOf(tree *ast.Policy) (all []test) {
	if t, ok := testOfScope(tree.Principal); ok {
		all = append(all, t)
	}
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			t, ok := testOf(n)
			if ok {
				all = append(all, t)
			}
			return !ok
		})
	}
	return all
}

// addTests adds those that are new.
func (p *Policy) addTests(tests []test) {
	for _, t := range tests {
		if !slices.ContainsFunc(p.tests, t.same) {
			p.tests = append(p.tests, t)
		}
	}
}
