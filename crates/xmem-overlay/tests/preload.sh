# What shells, git, tar and Python do with files; prints what they see. Run in a folder that the test fills.
exec 2>&1
# Files two folders below one in which something was written, and an open file by its link.
echo 1 > top; echo 2 > inner/deep/leaf; echo 3 > inner/deep/new; cat inner/deep/leaf inner/deep/new
python3 -c "f = open('best.pt'); open(f'/proc/self/fd/{f.fileno()}', 'w').write('zeros'); print(open('best.pt').read())"
echo hi > f; mv f g; cat g; rm g; ls
cp -r data copy; ls copy; sed -i s/a/b/ data/a; cat data/a; ls -la | awk '{print $1,$5,$9}' | grep -v '^total' | grep -v ' \.\.$' 
git init -q . && git -c user.email=a@b -c user.name=n add data && git -c user.email=a@b -c user.name=n commit -qm x && git status --short | head -20; git log --format=%s
tar cf t.tar data; tar tf t.tar; mkdir x && tar xf t.tar -C x; find . -path ./.git -prune -o -print | sort
cd x/data; pwd; echo q > ../z; ls ..; cd ../..; pwd; rm -r x; ls -d x
ln -s data lnk; ls lnk; cat lnk/a; echo c > lnk/new; ls data; readlink lnk; realpath lnk/new | sed s,.*/user,,
mkdir -p deep/er/est; touch deep/er/est/f; find deep; rm -rf deep; test -e deep || echo gone; rmdir data; rmdir empty; ls; chmod 700 data; stat -c %a data; python3 - <<'P'
import os, shutil, glob
for r,d,f in os.walk('.'):
    if '.git' in r: continue
    d.sort(); print(r, sorted(d)[:9], sorted(f)[:9])
print(sorted(glob.glob('**/*', recursive=True))[:20])
shutil.rmtree('checkpoints'); os.mkdir('checkpoints'); print(os.listdir('checkpoints'))
print([ (e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in sorted(os.scandir('.'), key=lambda e:e.name)])
os.rename('long.txt','a_very_long'); print(os.path.exists('long.txt'))
try: os.rename('no-such','data2')
except OSError as e: print(e)
shutil.copytree('data','data2'); shutil.rmtree('data'); print(os.listdir('.').count('data'), sorted(os.listdir('data2')))
try: open('no/such/file','w')
except OSError as e: print(e)
try: open('data2','w')
except OSError as e: print(e)
try: os.unlink('nope')
except OSError as e: print(e)
try: os.mkdir('copy')
except OSError as e: print(e)
fd=os.open('data2', os.O_RDONLY); print(sorted(os.listdir(fd))); os.close(fd)
import tempfile; d=tempfile.mkdtemp(dir='.'); open(d+'/x','w').write('1'); print(os.listdir(d)); os.chdir(d); print(os.path.basename(os.getcwd())==os.path.basename(d)); 
import multiprocessing as mp
os.chdir('..')
def w(i):
    os.makedirs('mp/%d'%(i%3), exist_ok=True); open('mp/%d/%d'%(i%3,i),'w').write(str(i)); return i
with mp.Pool(4) as p: print(sum(p.map(w, range(100))), sum(len(f) for _,_,f in os.walk('mp')))
import threading
ts=[threading.Thread(target=lambda i=i:(os.makedirs('th',exist_ok=True),open('th/%d'%i,'w').write('x'))) for i in range(50)]
[t.start() for t in ts]; [t.join() for t in ts]; print(len(os.listdir('th')))
import subprocess; print(subprocess.run(['sh','-c','echo y > envless; cat envless'], env={'PATH':'/usr/bin:/bin'}, capture_output=True).stdout)
P
