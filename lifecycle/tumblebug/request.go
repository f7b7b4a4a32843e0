package tumblebug

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// MciReq is the request for an MCI. It is a value; copies share the groups and the
// attributes.
type MciReq struct {
	Name      string
	SubGroups []SubGroup
	Hold      bool // stop in Prepared until continue or withdraw
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	// They count towards [lifecycle.Limits].Payload of the MCI, which is 1 MiB.
	Attributes json.RawMessage `json:",omitempty"`
}

// SubGroup is a number of equal VMs in one region. The names of its VMs are web-1,
// web-2 and so on.
type SubGroup struct {
	Name     string
	Size     int // 0: 1
	Provider string
	Region   string
	Spec     string
	Image    string
	// Attributes are those of each VM of the group, as in [MciReq]. Requests to the
	// provider contain them.
	Attributes json.RawMessage `json:",omitempty"`
}

// MaxVMs is the greatest number of VMs of one request.
const MaxVMs = 10_000

// check returns [lifecycle.ErrInvalid] for a malformed request.
func (r *MciReq) check() error {
	for i := range r.SubGroups {
		if g := &r.SubGroups[i]; g.Size < 0 {
			return fmt.Errorf("%w: SubGroup %q of %d VMs", lifecycle.ErrInvalid, g.Name, g.Size)
		}
	}
	return checkMembers(r.Name, planned(r.SubGroups))
}

func (g *SubGroup) size() int { return max(g.Size, 1) }

// planned returns the VMs of groups, by name.
func planned(groups []SubGroup) iter.Seq2[string, VMSpec] {
	return func(yield func(string, VMSpec) bool) {
		for i := range groups {
			g := &groups[i]
			spec := VMSpec{
				SubGroup: g.Name, Provider: g.Provider, Region: g.Region,
				Spec: g.Spec, Image: g.Image, Attributes: g.Attributes,
			}
			for n := range g.size() {
				if !yield(fmt.Sprintf("%s-%d", g.Name, n+1), spec) {
					return
				}
			}
		}
	}
}

// checkMembers returns [lifecycle.ErrInvalid] for the name of an MCI, and for its VMs: for
// names, for their number, and for two of one name.
func checkMembers(mci string, vms iter.Seq2[string, VMSpec]) error {
	if err := checkNames("MCI", mci); err != nil {
		return err
	}
	names := map[string]bool{}
	for name, vm := range vms {
		if err := checkNames("VM", name, "SubGroup", vm.SubGroup, "provider", vm.Provider, "region", vm.Region); err != nil {
			return err
		}
		if names[name] {
			return fmt.Errorf("%w: two VMs %q", lifecycle.ErrInvalid, name)
		}
		if names[name] = true; len(names) > MaxVMs {
			return fmt.Errorf("%w: an MCI has at most %d VMs", lifecycle.ErrInvalid, MaxVMs)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: MCI %q has no VM", lifecycle.ErrInvalid, mci)
	}
	return nil
}

// maxName is the greatest length of a name in bytes: three names and two slashes are
// an id.
const maxName = 63

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]+\z`).MatchString

// checkNames returns [lifecycle.ErrInvalid] for names that cannot be a part of an id or of
// a path of limits. The arguments are pairs of a kind and a name.
func checkNames(pairs ...string) error {
	for pair := range slices.Chunk(pairs, 2) {
		name := pair[1]
		if len(name) > maxName || strings.Trim(name, ".") == "" || !validName(name) {
			return fmt.Errorf("%w: %s name %q: use at most %d letters, digits, dots, dashes and underscores",
				lifecycle.ErrInvalid, pair[0], name, maxName)
		}
	}
	return nil
}
