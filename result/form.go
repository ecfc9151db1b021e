package result

// A Form is what configuration may say about results. Fields that are zero say
// nothing.
type Form struct {
	Profile Profile `yaml:"profile" enum:"envelope,text,structured,raw" doc:"Form of results: envelope, text, structured or raw. Default: what the upstream's models read best."`
	Limit   int     `yaml:"limit" min:"1000" max:"100000000" doc:"Longest result, in characters, as the model sees it; what is longer is cut by structure."`
	Tokens  int     `yaml:"tokens" min:"300" max:"100000000" doc:"Longest result in tokens, by an estimate. Default: no such limit."`
}

// Or returns f, with what it does not say taken from other.
func (f Form) Or(other Form) Form {
	if f.Profile == "" {
		f.Profile = other.Profile
	}
	if f.Limit == 0 {
		f.Limit = other.Limit
	}
	if f.Tokens == 0 {
		f.Tokens = other.Tokens
	}
	return f
}
