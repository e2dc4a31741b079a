gtm	; The suite `documents` in native M, for GT.M: document k is the tree below ^doc(k).
	; A request is a line of words between tabs, the first its label here; an answer is the lines of what was
	; asked for, then `ok` and a count, or `error` and why. The end of input is the end.
	new line,template,count
	set $ztrap="do failed^gtm"
	use $principal:(width=1048576:nowrap)
	for  read line quit:($zeof&(line=""))  do request(line) quit:$zeof
	quit
	;
request(line)
	set count=0
	do @$piece(line,$char(9),1)
	write "ok",$char(9),count,!
	quit
	;
failed	; ends the request, and with it the program
	write "error",$char(9),$zstatus,!
	halt
	;
word(n)	quit $piece(line,$char(9),n)
	;
new	; the document of the next requests
	kill template
	quit
leaf	; one leaf of it: its value, then its subscripts
	new name,n
	set name="template"
	for n=3:1:$length(line,$char(9)) set name=$name(@name@($$word(n)))
	set @name=$$word(2)
	quit
clear	; removes all documents
	kill ^doc
	quit
	;
set	; sets documents from one number on to another, so many in a transaction
	new first,last,step,how,k,to
	set first=$$word(2),last=$$word(3),step=$$word(4),how=$$word(5)
	for k=first:step:last do
	. set to=k+step-1 set:to>last to=last
	. if how="whole" tstart ():serial  do whole(k,to)  tcommit  quit
	. tstart ():serial  do leaves(k,to)  tcommit
	set count=last-first+1
	quit
plain	; sets documents without a transaction
	new first,last,how
	set first=$$word(2),last=$$word(3),how=$$word(4)
	if how="whole" do whole(first,last) set count=last-first+1 quit
	do leaves(first,last)
	set count=last-first+1
	quit
whole(first,last)
	new k
	for k=first:1:last merge ^doc(k)=template
	quit
leaves(first,last)
	new k
	for k=first:1:last do put($name(^doc(k)),"template")
	quit
put(to,from)	; generic recursion: each leaf is a set of its own
	new s
	set s=""
	for  set s=$order(@from@(s)) quit:s=""  do
	. if $data(@from@(s))=1 set @to@(s)=@from@(s) quit
	. do put($name(@to@(s)),$name(@from@(s)))
	quit
	;
change	; one leaf of each document becomes another text, so many in a transaction, or without one
	new n,step,k,to
	set n=$$word(2),step=$$word(3)
	if 'step do alter(1,n) set count=n quit
	for k=1:step:n do
	. set to=k+step-1 set:to>n to=n
	. tstart ():serial  do alter(k,to)  tcommit
	set count=n
	quit
alter(first,last)
	new k,i,name
	for k=first:1:last do
	. set name=$name(^doc(k))
	. for i=5:1:$length(line,$char(9)) set name=$name(@name@($$word(i)))
	. set @name=$$word(4)
	quit
	;
nested	do get("nested") quit
cursor	do get("cursor") quit
merge	do get("merge") quit
get(how)	; rebuilds each document as a local tree; shows its leaves, where that is asked for
	new n,shows,k,got
	set n=$$word(2),shows=$$word(3)
	for k=1:1:n do
	. kill got
	. if how="nested" do next($name(^doc(k)),"got")
	. if how="cursor" do query(k)
	. if how="merge" merge got=^doc(k)
	. do:shows show(k)
	. set:$data(got) count=count+1
	quit
next(from,to)	; generic recursion: a level is stepped through by its siblings
	new s,kind
	set s=""
	for  set s=$order(@from@(s)) quit:s=""  do
	. set kind=$data(@from@(s))
	. if kind=1 set @to@(s)=@from@(s) quit
	. do next($name(@from@(s)),$name(@to@(s)))
	quit
query(k)	; one cursor over the leaves of the document
	new at,i,name
	set at=$name(^doc(k))
	for  set at=$query(@at) quit:at=""  quit:$qsubscript(at,1)'=k  do
	. set name="got"
	. for i=2:1:$qlength(at) set name=$name(@name@($qsubscript(at,i)))
	. set @name=@at
	quit
read	; one leaf of each document, by its subscripts
	new n,shows,k,i,name,got
	set n=$$word(2),shows=$$word(3)
	for k=1:1:n do
	. set name=$name(^doc(k))
	. for i=4:1:$length(line,$char(9)) set name=$name(@name@($$word(i)))
	. set got=@name
	. write:shows k,$char(9),got,!
	set count=n
	quit
show(k)	; the leaves of a local tree, each with its value, then its subscripts
	new at,i
	if $data(got)#10 write k,$char(9),got,!
	set at="got"
	for  set at=$query(@at) quit:at=""  do
	. write k,$char(9),@at
	. for i=1:1:$qlength(at) write $char(9),$qsubscript(at,i)
	. write !
	quit
