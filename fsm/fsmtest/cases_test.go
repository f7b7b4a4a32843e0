package fsmtest_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

type diskCase = fsmtest.Case[string, string, disk]

func TestRun(t *testing.T) {
	created := new("created")
	fsmtest.Run(t, disks, []diskCase{
		{From: "absent", Event: "create", Actor: user, To: "creating"},
		{From: "absent", Event: "create", Actor: worker, Err: fsm.ErrWrongActor},
		{From: "created", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting", Row: new(4)},
		{From: "created", Event: "delete", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
		{From: "deleting", Origin: created, Event: "done", Actor: worker, To: "trash"},
		{From: "deleting", Origin: created, Event: "failed", Actor: worker, To: "created"},
		{From: "deleting", Event: "failed", Actor: worker, Err: fsm.ErrNotAllowed},
		{From: "deleting", Event: "delete", Actor: user, Ignored: true, Row: new(10)},
		{From: "gone", Event: "restore", Actor: user, Err: fsm.ErrForcedOnly},
		{From: "gone", Event: "restore", Actor: user, Force: true, To: "created"},
	})
	for fault, c := range map[string]diskCase{
		"absent: create by user: leads to creating instead of created":                            {From: "absent", Event: "create", Actor: user, To: "created"},
		"absent: create by worker: is refused: fsm: wrong actor":                                  {From: "absent", Event: "create", Actor: worker, To: "creating"},
		"absent: create by worker: is refused for another reason: fsm: wrong actor":               {From: "absent", Event: "create", Actor: worker, Err: fsm.ErrGuard},
		"absent: create by user: is not refused and leads to creating":                            {From: "absent", Event: "create", Actor: user, Err: fsm.ErrGuard},
		"deleting (from created): done by worker: leads to trash instead":                         {From: "deleting", Origin: created, Event: "done", Actor: worker, To: "gone"},
		"trash: delete by user: takes row 6 instead of 5":                                         {From: "trash", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting", Row: new(5)},
		"nowhere: create by user: fsm: unknown state":                                             {From: "nowhere", Event: "create", Actor: user},
		"gone: restore by user by force: leads to created instead of absent":                      {From: "gone", Event: "restore", Actor: user, Force: true, To: "absent"},
		"deleting: delete by user: is ignored instead of leading to deleting":                     {From: "deleting", Event: "delete", Actor: user, To: "deleting"},
		"absent: create by user: is not ignored and leads to creating":                            {From: "absent", Event: "create", Actor: user, Ignored: true},
		"deleting: delete by user: takes row 10 instead of 5":                                     {From: "deleting", Event: "delete", Actor: user, Ignored: true, Row: new(5)},
		"absent: create by user: leads to creating instead of \"craeting\", which is not a state": {From: "absent", Event: "create", Actor: user, To: "craeting"},
		"absent: create by user: leads to creating instead of \"\", which is not a state":         {From: "absent", Event: "create", Actor: user},
		"deleting: delete by user: is ignored instead of leading to \"\", which is not a state":   {From: "deleting", Event: "delete", Actor: user},
		"absent: explode by user: is refused: fsm: unknown event":                                 {From: "absent", Event: "explode", Actor: user, To: "gone"},
	} {
		fails(t, func(t testing.TB) { fsmtest.Run(t, disks, []diskCase{c}) }, "disk: case 0: "+fault)
	}
	fails(t, func(t testing.TB) { fsmtest.Run(t, disks, nil) }, "no cases")
}
