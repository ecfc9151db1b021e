package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// A policy is one Cedar policy and what there is to know about it before anybody
// asks.
type policy struct {
	*cedar.Policy
	id        cedar.PolicyID // its place among all
	name      string
	ask       bool // a permit that is a question
	approvers []string
	uses      uses
	members   []string // of arguments that it looks at, at any depth

	// before is a policy of what stands in this one before it first looks at
	// arguments. Cedar joins conditions as && does, from left to right: where
	// before does not hold, nor does this one, whatever the arguments are.
	before *cedar.Policy

	// about is a policy of what stands in this one before it looks at anything but
	// the target; where that does not hold, this one is not about the target.
	about *cedar.Policy

	tests []test
}

// statements are policies as Cedar takes them, in order.
type statements []*policy

// All implements [cedar.PolicyIterator].
func (s statements) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, p := range s {
			if !yield(p.id, p.Policy) {
				return
			}
		}
	}
}

// add reads policies out of Cedar text. names are theirs where the text is our
// own; nil for the text of others, which is looked at closely.
func (p *Policy) add(place, text string, names []string) error {
	list, err := cedar.NewPolicyListFromBytes(place, []byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	for i, each := range list {
		read := &policy{Policy: each}
		if names != nil {
			read.name = names[i]
		}
		if err := read.read(); err != nil {
			return fmt.Errorf("%s:%d: %w", place, each.Position().Line, err)
		}
		if read.name == "" {
			read.name = fmt.Sprintf("%s:%d", place, each.Position().Line)
		}
		p.policies = append(p.policies, read)
	}
	return nil
}

// read finds out what a policy is and what it looks at.
func (p *policy) read() error {
	tree := (*ast.Policy)(p.AST())
	approvers := false
	for _, a := range tree.Annotations {
		switch value := string(a.Value); a.Key {
		case "id":
			p.name = value
		case "ask":
			if p.ask = true; value != "" {
				return fmt.Errorf("@ask says nothing; who may answer stands in @approvers(%q)", value)
			}
		case "approvers":
			approvers = true
			for name := range strings.SplitSeq(value, ",") {
				if name = strings.TrimSpace(name); name != "" {
					p.approvers = append(p.approvers, name)
				}
			}
		case "description":
		default:
			return fmt.Errorf("there is no annotation @%s; there are @id, @ask, @approvers and @description", a.Key)
		}
	}
	switch {
	case p.ask && p.Effect() == cedar.Forbid:
		return fmt.Errorf("forbid cannot ask; @ask stands before permit")
	case approvers && !p.ask:
		return fmt.Errorf("@approvers has no meaning without @ask")
	case approvers && p.approvers == nil:
		return fmt.Errorf("@approvers names nobody")
	}
	if err := p.uses.of(tree); err != nil {
		return err
	}
	p.tests = testsOf(tree)
	if p.uses.arguments {
		p.members = members(tree)
		p.before = front(tree, func(u uses) bool { return u.arguments })
	}
	anybody := *tree
	anybody.Principal = ast.ScopeTypeAll{}
	p.about = front(&anybody, func(u uses) bool { return u != uses{} })
	return nil
}

// members returns the names by which a policy looks for members of what is no entity: of
// the arguments.
func members(tree *ast.Policy) (names []string) {
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeAccess:
				names = append(names, member(n.StrOpNode)...)
			case ast.NodeTypeHas:
				names = append(names, member(n.StrOpNode)...)
			case ast.NodeTypeRecord:
				for _, e := range n.Elements {
					names = append(names, string(e.Key))
				}
			case ast.NodeValue:
				names = append(names, namesIn(n.Value)...)
			}
			return true
		})
	}
	return names
}

// member returns the name by which an expression looks into something that is no variable.
func member(n ast.StrOpNode) []string {
	if _, ok := n.Arg.(ast.NodeTypeVariable); ok {
		return nil
	}
	return []string{string(n.Value)}
}

// namesIn returns the names of the members of a record, at any depth.
func namesIn(v types.Value) (names []string) {
	switch v := v.(type) {
	case types.Record:
		for name, value := range v.All() {
			names = append(append(names, string(name)), namesIn(value)...)
		}
	case types.Set:
		for value := range v.All() {
			names = append(names, namesIn(value)...)
		}
	}
	return names
}

// front returns what stands in a policy before it looks at something.
func front(tree *ast.Policy, at func(uses) bool) *cedar.Policy {
	f := *tree
	f.Conditions = nil
	for _, c := range tree.Conditions {
		conjuncts := []ast.IsNode{c.Body}
		if c.Condition == ast.ConditionWhen {
			conjuncts = flatten(c.Body)
		}
		for _, node := range conjuncts {
			var u uses
			if u.node(node) != nil || at(u) {
				return cedar.NewPolicyFromAST((*publicPolicy)(&f))
			}
			f.Conditions = append(f.Conditions, ast.ConditionType{Condition: c.Condition, Body: node})
		}
	}
	return cedar.NewPolicyFromAST((*publicPolicy)(&f))
}

// flatten returns the parts of a conjunction from left to right.
func flatten(n ast.IsNode) []ast.IsNode {
	if and, ok := n.(ast.NodeTypeAnd); ok {
		return append(flatten(and.Left), flatten(and.Right)...)
	}
	return []ast.IsNode{n}
}

// uses says what policies look at.
type uses struct {
	// Attributes of the caller: what two callers must have in common to be one
	// for the rules.
	id, name, issuer, client, scopes bool
	tested                           bool // the answers to the tests of id and name, where no more is asked of them
	tainted, arguments               bool
}

func (u uses) with(other uses) uses {
	return uses{
		u.id || other.id, u.name || other.name, u.issuer || other.issuer, u.client || other.client, u.scopes || other.scopes,
		u.tested || other.tested, u.tainted || other.tainted, u.arguments || other.arguments,
	}
}

// The attributes that there are; what is no attribute would be an error whenever
// the policy is evaluated, and deny everything.
var (
	resourceAttributes = []types.String{"name", "server", "original", "effect", "hints", "open_world"}
	entityTypes        = []types.EntityType{typeCaller, typeTool, typePrompt, typeResource, typeTemplate, typeSkill, typeServer, typeModel, typeRoute, typePattern, typeJSON, typeAction}
	actionIDs          = []types.String{types.String(Call), types.String(Read), types.String(Model), types.String(Route)}
)

// of looks through a policy.
func (u *uses) of(tree *ast.Policy) error {
	switch tree.Principal.(type) {
	case ast.ScopeTypeAll, ast.ScopeTypeIs:
	default: // one caller, or a group of them
		if _, u.tested = testOfScope(tree.Principal); !u.tested {
			u.id, u.name = true, true
		}
	}
	for _, scope := range []ast.IsScopeNode{tree.Principal, tree.Action, tree.Resource} {
		if err := checkScope(scope); err != nil {
			return err
		}
	}
	for _, c := range tree.Conditions {
		if err := u.node(c.Body); err != nil {
			return err
		}
	}
	return nil
}

// entitiesOf returns the entities that a scope names.
func entitiesOf(scope ast.IsScopeNode) []types.EntityUID {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		return []types.EntityUID{s.Entity}
	case ast.ScopeTypeIn:
		return []types.EntityUID{s.Entity}
	case ast.ScopeTypeInSet:
		return s.Entities
	case ast.ScopeTypeIsIn:
		return []types.EntityUID{s.Entity}
	}
	return nil
}

// groups returns the patterns whose groups a policy looks at, of callers and of targets: a
// condition may look at either.
func (p *policy) groups() (callers, targets []string) {
	tree := (*ast.Policy)(p.AST())
	for _, e := range entitiesOf(tree.Principal) {
		callers = appendPatterns(callers, e)
	}
	for _, e := range entitiesOf(tree.Resource) {
		targets = appendPatterns(targets, e)
	}
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			if value, ok := n.(ast.NodeValue); ok {
				callers, targets = appendPatterns(callers, value.Value), appendPatterns(targets, value.Value)
			}
			return true
		})
	}
	return callers, targets
}

// appendPatterns adds those whose groups a value names.
func appendPatterns(patterns []string, v types.Value) []string {
	switch v := v.(type) {
	case types.EntityUID:
		if v.Type == typePattern {
			patterns = append(patterns, string(v.ID))
		}
	case types.Set:
		for each := range v.All() {
			patterns = appendPatterns(patterns, each)
		}
	}
	return patterns
}

func checkScope(scope ast.IsScopeNode) error {
	switch s := scope.(type) {
	case ast.ScopeTypeIs:
		return checkType(s.Type)
	case ast.ScopeTypeIsIn:
		if err := checkType(s.Type); err != nil {
			return err
		}
	}
	for _, e := range entitiesOf(scope) {
		if err := checkEntity(e); err != nil {
			return err
		}
	}
	return nil
}

func checkType(t types.EntityType) error {
	if !slices.Contains(entityTypes, t) {
		return fmt.Errorf("there is no type %s; there are %s", t, join(entityTypes))
	}
	return nil
}

func checkEntity(e types.EntityUID) error {
	if e.Type == typeAction && !slices.Contains(actionIDs, e.ID) {
		return fmt.Errorf("there is no %s; the actions are %s", e, join(actionIDs))
	}
	return checkType(e.Type)
}

func join[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// node looks through an expression.
func (u *uses) node(n ast.IsNode) (err error) {
	ast.Inspect(ast.NewNode(n), func(n ast.IsNode) bool {
		if err != nil {
			return false
		}
		if _, ok := testOf(n); ok {
			u.tested = true
			return false
		}
		switch n := n.(type) {
		case ast.NodeTypeAccess:
			return u.attribute(n.StrOpNode, &err)
		case ast.NodeTypeHas:
			return u.attribute(n.StrOpNode, &err)
		case ast.NodeTypeVariable:
			u.whole(n.Name)
		case ast.NodeTypeIs:
			err = checkType(n.EntityType)
		case ast.NodeTypeIsIn:
			err = checkType(n.EntityType)
		case ast.NodeValue:
			if e, ok := n.Value.(types.EntityUID); ok {
				err = checkEntity(e)
			}
		}
		return err == nil
	})
	return err
}

// whole notes that a variable is used as a whole.
func (u *uses) whole(variable types.String) {
	switch variable {
	case "principal":
		u.id, u.name, u.issuer, u.client, u.scopes = true, true, true, true, true
	case "context":
		u.tainted, u.arguments = true, true
	}
}

// attribute notes an attribute of a variable, and reports whether there is more
// to look at below.
func (u *uses) attribute(n ast.StrOpNode, err *error) bool {
	variable, ok := n.Arg.(ast.NodeTypeVariable)
	if !ok {
		return true
	}
	known := true
	switch variable.Name {
	case "principal":
		switch n.Value {
		case "id":
			u.id = true
		case "name":
			u.name = true
		case "issuer":
			u.issuer = true
		case "client":
			u.client = true
		case "scopes":
			u.scopes = true
		default:
			known = false
		}
	case "context":
		switch n.Value {
		case "tainted":
			u.tainted = true
		case "arguments", "inexact":
			u.arguments = true
		default:
			known = false
		}
	case "resource":
		known = slices.Contains(resourceAttributes, n.Value)
	default:
		known = false
	}
	if !known {
		*err = fmt.Errorf("there is no %s.%s", variable.Name, n.Value)
	}
	return false
}
