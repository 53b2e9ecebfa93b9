#!/usr/bin/env bash
# ghostscript: a drawing with text, curves, patterns and clipping becomes a
# bitmap and a PDF; the PDF becomes a bitmap again.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need gs
prove gs --version

cat >"$work/drawing.ps" <<'PS'
%!PS
/Helvetica findfont 12 scalefont setfont
1 1 6 {
  /page exch def
  0 10 700 { /y exch def
    y 700 div 0.3 page 6 div setrgbcolor
    newpath 20 y moveto 200 y 300 700 y sub 580 y curveto stroke
    30 y moveto (line ) show y 10 string cvs show
  } for
  gsave 300 400 100 0 360 arc clip
  0 1 80 { /i exch def i 80 div setgray i 5 mul 300 i 4 mul 100 rectfill } for
  grestore
  /Times-Roman findfont 40 scalefont setfont
  gsave 100 100 translate 0 1 35 { pop 10 rotate 0 0 moveto (hakmem) true charpath stroke } for grestore
  /d 300 dict def 0 1 2000 { /k exch def d k 290 mod k 30 string cvs put } for
  showpage
} for
PS
for how in without with; do
    run=env
    [ $how = with ] && run=under
    options=(-q -dNOPAUSE -dBATCH -dSAFER)
    mkdir "$work/$how"
    $run gs "${options[@]}" -sDEVICE=ppmraw -r72 "-sOutputFile=$work/$how/page%d.ppm" "$work/drawing.ps"
    $run gs "${options[@]}" -sDEVICE=pdfwrite "-sOutputFile=$work/$how.pdf" "$work/drawing.ps"
    $run gs "${options[@]}" -sDEVICE=pgmraw -r50 "-sOutputFile=$work/$how/pdf%d.pgm" "$work/$how.pdf"
    (cd "$work/$how" && sha256sum -- *) >"$work/$how.sums"
done
[ "$(wc -l <"$work/without.sums")" = 12 ]
same "the bitmaps" "$work/without.sums" "$work/with.sums"
